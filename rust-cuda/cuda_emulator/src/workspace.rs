//! The resources of an OS thread that runs blocks, which are kept for the next launch: stacks and
//! shared memory.

use std::cell::RefCell;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::shared::SharedPool;
#[cfg(not(guarded))]
use crate::sys::Make as _;
use crate::sys::ThreadStack;

#[derive(Default)]
pub(crate) struct Workspace {
    pub stacks: RefCell<Vec<ThreadStack>>,
    /// The size the stacks were made with.
    stack_bytes: usize,
    pub shared: RefCell<SharedPool>,
}

/// Unused workspaces, the last used one at the end.
fn idle() -> MutexGuard<'static, Vec<Workspace>> {
    static IDLE: Mutex<Vec<Workspace>> = Mutex::new(Vec::new());
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the idle workspaces to the system.
pub(crate) fn drop_idle() {
    let idle = std::mem::take(&mut *idle());
    // Unmapped here, without the lock.
    drop(idle);
}

/// The largest number of idle workspaces that are kept.
const IDLE_MAX: usize = 64;

/// The largest number of stacks kept in an idle workspace: those of the largest
/// block.
const STACKS_MAX: usize = 1024;

impl Workspace {
    /// A workspace whose stacks have at least `stack_bytes`.
    pub fn take(stack_bytes: usize) -> Self {
        let mut idle = idle();
        match idle.iter().rposition(|w| w.stack_bytes == stack_bytes) {
            Some(alike) => idle.remove(alike),
            None => Self {
                stack_bytes,
                ..Self::default()
            },
        }
    }

    /// Keeps the workspace for another launch.
    pub fn put_back(self) {
        self.stacks.borrow_mut().truncate(STACKS_MAX);
        let oldest = {
            let mut idle = idle();
            idle.push(self);
            (idle.len() > IDLE_MAX).then(|| idle.remove(0))
        };
        // Unmapped here, without the lock.
        drop(oldest);
    }

    /// A stack. The one used last comes first: it is in the cache.
    pub fn stack(&self) -> io::Result<ThreadStack> {
        let mut stacks = self.stacks.borrow_mut();
        if let Some(stack) = stacks.pop() {
            return Ok(stack);
        }
        ThreadStack::make(self.stack_bytes, &mut stacks)?;
        stacks
            .pop()
            .ok_or_else(|| io::Error::other("no stack was made"))
    }
}
