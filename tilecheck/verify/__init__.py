"""From paths to reports: discovery, the stages of each kernel, and what is shown of them."""
