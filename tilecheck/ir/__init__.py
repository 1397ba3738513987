"""Plain, frozen data between the stages: expressions, accesses, kernels. No third party."""
