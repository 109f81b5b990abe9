"""What every HTTP server of Headway needs below its routes: sockets, TLS, heads and bodies within limits, keys."""
