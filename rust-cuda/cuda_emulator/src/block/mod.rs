//! The state and operations of one block.
//!
//! Everything here happens on one OS thread, partly on the stack of an emulated
//! thread (the functions that intrinsics call) and partly on the scheduler's
//! (see [`Runner`](crate::runner::Runner)), never both at once. So the state is
//! in `Cell`s, and nothing holds a borrow of a `RefCell` while it suspends.

mod arrays;
mod barriers;
mod copies;
mod faults;
mod requests;
mod shared;
mod state;
mod textures;
mod warps;

pub use self::arrays::SharedSlot;
pub use self::requests::ShuffleKind;
pub(crate) use self::requests::{Form, WarpOperation, WarpRequest};
pub(crate) use self::state::{Block, Counts, ExitThread, Launch, State, running, watched};
