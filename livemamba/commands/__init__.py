"""What each subcommand of `livemamba` does, one file each."""
