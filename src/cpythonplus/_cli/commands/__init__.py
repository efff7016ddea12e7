"""One module per sub-command, each with `main(arguments) -> exit status`."""
