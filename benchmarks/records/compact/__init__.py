"""CompactDict beside dict."""
