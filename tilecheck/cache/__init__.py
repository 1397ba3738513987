"""Results of earlier runs, kept by what decides them.

Two levels: whole files, which need neither parser nor solver to be found again, and single kernels of files
that were parsed and lowered. An entry is found by its key, holds for as long as its evidence does, and is JSON.
Why a hit is what a fresh run would say is argued in `docs/cache.md`.
"""
