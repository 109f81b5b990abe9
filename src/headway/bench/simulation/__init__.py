"""A fleet of engines without engines: traffic is replayed against the scheduler's rules and step times that were measured or reckoned."""
