//! What an OS thread needs to run blocks and what is worth keeping for the next
//! launch: stacks and shared memory.

use std::cell::RefCell;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::shared::SharedPool;
#[allow(
    unused_imports,
    reason = "a trait on platforms without guard pages only"
)]
use crate::sys::*;

#[derive(Default)]
pub(crate) struct Workspace {
    pub stacks: RefCell<Vec<ThreadStack>>,
    /// The size the stacks were made with.
    stack_bytes: usize,
    pub shared: RefCell<SharedPool>,
}

/// Workspaces nobody uses at the moment. Never more than ever ran at once, and
/// at most [`IDLE_MAX`].
static IDLE: Mutex<Vec<Workspace>> = Mutex::new(Vec::new());

/// Idle workspaces kept.
const IDLE_MAX: usize = 256;

/// Stacks kept in an idle workspace: those of the largest block.
const STACKS_MAX: usize = 1024;

impl Workspace {
    /// A workspace whose stacks have at least `stack_bytes`.
    pub fn take(stack_bytes: usize) -> Self {
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            // One with the right stacks if possible.
            let alike = idle.iter().rposition(|w| w.stack_bytes == stack_bytes);
            match alike {
                Some(alike) => Some(idle.swap_remove(alike)),
                None => idle.pop(),
            }
        };
        let mut workspace = idle.unwrap_or_default();
        if workspace.stack_bytes != stack_bytes {
            workspace.stacks.borrow_mut().clear();
            workspace.stack_bytes = stack_bytes;
        }
        workspace
    }

    /// Keeps the workspace for another launch.
    pub fn put_back(self) {
        self.stacks.borrow_mut().truncate(STACKS_MAX);
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(self);
        }
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
