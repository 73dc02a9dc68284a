//! Memory that plans keep from call to call.

use crate::{Device, Error};
use std::sync::{Mutex, PoisonError};

/// What a plan keeps on each device that it has been used on.
///
/// A call takes one that suits, or makes one, and gives it back when all that uses it has
/// been queued: work on one device is done in the order in which it was queued, so the next
/// call may take it at once. Calls from several threads at the same time have one each.
///
/// Nothing is freed before the plan is dropped, so that work which was recorded finds its
/// memory in place. What a recording uses stays its plan's: replays are queued like calls.
#[derive(Debug)]
pub(crate) struct Workspaces<W> {
    free: Mutex<Vec<(Device, W)>>,
}

impl<W> Default for Workspaces<W> {
    fn default() -> Self {
        Self {
            free: Mutex::new(Vec::new()),
        }
    }
}

/// A plan's copy begins without memory.
impl<W> Clone for Workspaces<W> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Plans that compute the same are equal, whatever memory they hold.
impl<W> PartialEq for Workspaces<W> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<W> Workspaces<W> {
    /// Calls `work` with memory on `device` that `suits`, made by `make` where there is none.
    pub(crate) fn with<R>(
        &self,
        device: &Device,
        suits: impl Fn(&W) -> bool,
        make: impl FnOnce() -> Result<W, Error>,
        work: impl FnOnce(&mut W) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let taken = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            let place = free
                .iter()
                .position(|(owner, memory)| owner == device && suits(memory));
            place.map(|place| free.swap_remove(place).1)
        };
        let mut memory = match taken {
            Some(memory) => memory,
            None => make()?,
        };
        let outcome = work(&mut memory);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push((device.clone(), memory));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_made_once_for_each_device_and_size() -> Result<(), Error> {
        let (cpu, emulator) = (Device::cpu(), Device::emulator());
        let workspaces = Workspaces::<Vec<u8>>::default();
        let mut made = 0;
        for (device, len) in [
            (&cpu, 3),
            (&cpu, 3),
            (&emulator, 3),
            (&cpu, 2),
            (&cpu, 4),
            (&emulator, 3),
            (&cpu, 3),
        ] {
            let make = || {
                made += 1;
                Ok(vec![0; len])
            };
            workspaces.with(
                device,
                |memory| memory.len() >= len,
                make,
                |memory| {
                    assert!(memory.len() >= len);
                    memory[0] += 1;
                    Ok(())
                },
            )?;
        }
        assert_eq!(made, 3);
        Ok(())
    }

    #[test]
    fn calls_within_calls_have_memory_of_their_own() -> Result<(), Error> {
        let device = Device::cpu();
        let workspaces = Workspaces::default();
        let new = || Ok([0]);
        workspaces.with(
            &device,
            |_| true,
            new,
            |outer| {
                workspaces.with(
                    &device,
                    |_| true,
                    new,
                    |inner| {
                        inner[0] = 1;
                        Ok(())
                    },
                )?;
                assert_eq!(outer[0], 0);
                Ok(())
            },
        )
    }

    #[test]
    fn memory_comes_back_from_a_call_that_fails() -> Result<(), Error> {
        let device = Device::cpu();
        let workspaces = Workspaces::default();
        let failed: Result<(), Error> =
            workspaces.with(&device, |_| true, || Ok([7]), |_| Err(Error::NoDevice));
        assert!(failed.is_err());
        let never = || Err(Error::NoDevice);
        workspaces.with(
            &device,
            |_| true,
            never,
            |memory| {
                assert_eq!(*memory, [7]);
                Ok(())
            },
        )
    }
}
