"""A demonstration: three problems, each with stock, plus, the gain and its price."""
