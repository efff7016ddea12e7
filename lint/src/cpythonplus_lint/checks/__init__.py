"""The rules, and the analyses that they share: scopes, control flow, held objects."""
