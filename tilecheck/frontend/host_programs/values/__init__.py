"""Values of host programs: tensors, numbers, containers, and objects that hold them."""
