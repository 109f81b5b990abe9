"""Engines that come with Headway."""
