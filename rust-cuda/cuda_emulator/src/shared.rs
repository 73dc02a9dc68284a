//! Shared memory: guarded regions that successive blocks reuse.

use std::io;

use crate::region::{Placement, Region};

/// Regions of shared memory, kept for the next block that needs one of the same
/// size and alignment.
#[derive(Debug, Default)]
pub(crate) struct SharedPool {
    regions: Vec<Pooled>,
    clock: u64,
}

#[derive(Debug)]
struct Pooled {
    region: Region,
    align: usize,
    in_use: bool,
    last_used: u64,
}

/// The largest number of unused regions that are kept.
const IDLE_MAX: usize = 64;

/// A region taken from a [`SharedPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegionId(usize);

impl SharedPool {
    /// A region of `len` bytes aligned to `align`, filled with `poison`, with
    /// `canary` around it.
    pub fn take(
        &mut self,
        len: usize,
        align: usize,
        poison: u32,
        canary: u32,
    ) -> io::Result<RegionId> {
        let fits =
            |pooled: &Pooled| !pooled.in_use && pooled.align == align && pooled.region.len() == len;
        let index = match self.regions.iter().position(fits) {
            Some(index) => index,
            None => {
                let region = Region::new(len, align, Placement::End, canary)?;
                let pooled = Pooled {
                    region,
                    align,
                    in_use: false,
                    last_used: 0,
                };
                // It replaces the region that has been idle longest, if there
                // are too many.
                let idle = || self.regions.iter().enumerate().filter(|(_, p)| !p.in_use);
                let oldest = idle().min_by_key(|(_, p)| p.last_used).map(|(i, _)| i);
                match oldest {
                    Some(oldest) if idle().count() >= IDLE_MAX => {
                        self.regions[oldest] = pooled;
                        oldest
                    }
                    _ => {
                        self.regions.push(pooled);
                        self.regions.len() - 1
                    }
                }
            }
        };
        self.clock += 1;
        let pooled = &mut self.regions[index];
        pooled.in_use = true;
        pooled.last_used = self.clock;
        pooled.region.set_canaries(canary);
        // SAFETY: the region is in use by no block; pointers of an earlier block
        // are dead, and a kernel that kept one is at fault.
        unsafe { pooled.region.fill(poison) };
        Ok(RegionId(index))
    }

    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.0].region
    }

    /// Makes the region available to other blocks.
    pub fn put_back(&mut self, id: RegionId) {
        self.regions[id.0].in_use = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_reused_only_when_alike_and_free() {
        let mut pool = SharedPool::default();
        let a = pool.take(100, 4, 1, 2).unwrap();
        let b = pool.take(100, 4, 1, 2).unwrap();
        assert_ne!(a, b);
        pool.put_back(a);
        assert_ne!(pool.take(100, 16, 1, 2).unwrap(), a);
        assert_eq!(pool.take(100, 4, 1, 2).unwrap(), a);
    }

    #[test]
    fn idle_regions_do_not_pile_up() {
        let mut pool = SharedPool::default();
        for len in 1..=500 {
            let id = pool.take(len, 1, 0, 1).unwrap();
            pool.put_back(id);
        }
        assert_eq!(pool.regions.len(), IDLE_MAX);
    }
}
