import torch, triton
import triton.language as tl
@triton.jit
def k(x, n, R: tl.constexpr, B: tl.constexpr):
    if R > 0:
        if R < 1:
            tl.store(x, tl.program_id(0))
    i = tl.program_id(0)*B + tl.arange(0, B)
    tl.store(x+i+1, i, mask=i<n)
def host(r):
    x = torch.empty(65)
    k[(4,)](x, 64, R=r, B=16)
def host2():
    x = torch.empty(65)
    k[(4,)](x, 64, R=0.5, B=16)
