"""What each rule looks for, and what the rules share: scopes, control flow, who holds what."""
