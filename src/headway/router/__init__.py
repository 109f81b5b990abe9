"""The semantic router: reads each request, decides by declared policy which model answers, and can say why."""
