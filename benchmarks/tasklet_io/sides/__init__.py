"""One module for each package that is measured, with the parts of `protocol.Peer` that it has."""
