//! Replaces race detection on platforms that cannot watch accesses.

use std::sync::Arc;

use crate::config::LaunchConfig;
use crate::diagnosis::{Diagnosis, MemoryName};
use crate::here::{Site, Watching};
use crate::record::Record;
use crate::region::Region;

/// No run is watched.
pub(crate) enum Trace {}

impl Trace {
    pub fn new(_: &LaunchConfig, _: usize, _: u32, _: &[Arc<Record>]) -> Option<Self> {
        None
    }

    pub fn blocks(&self) -> u64 {
        match *self {}
    }

    pub fn enter(&self, _: u64, _: u32) {
        match *self {}
    }

    pub fn rest(&self) {
        match *self {}
    }

    pub fn end_block(&self, _: u64) {
        match *self {}
    }

    pub fn add_shared(&self, _: u64, _: &Region, _: MemoryName) {
        match *self {}
    }

    pub fn barrier(&self, _: u64) {
        match *self {}
    }

    pub fn warp_barrier(&self, _: u64, _: u32, _: u32) {
        match *self {}
    }

    pub fn atomic(&self, _: u64, _: u32) {
        match *self {}
    }
}

// SAFETY: this is `Trace`.
unsafe impl Watching for Trace {
    fn fault(&self, _: usize, _: bool, _: usize, _: bool, _: Option<Site>) -> Option<bool> {
        match *self {}
    }

    fn stepped(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn first_race(trace: &Trace, _: &LaunchConfig) -> Option<Diagnosis> {
    match *trace {}
}
