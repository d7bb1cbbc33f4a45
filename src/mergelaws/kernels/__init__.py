"""The Triton kernels. Each trusts its arguments: `mergelaws.operations` has checked them.

All of them compute in float32, write every element of their outputs and nothing else, and obey semantics.md's table of
special values. Offsets are 64-bit where the sizes need it. Sums run in an order that depends on N alone, so a row has the same bits in any batch.
"""
