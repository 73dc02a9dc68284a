//! Asynchronous copies: recorded when started, carried out when waited for.

use std::{hint, ptr};

use super::requests::AsyncCopy;
use super::state::Block;
use crate::here::Site;
use crate::region::fill_words;

impl Block<'_> {
    /// Starts an asynchronous copy.
    ///
    /// # Safety
    ///
    /// As for [`intrinsics::cp_async_zfill`](crate::intrinsics::cp_async_zfill).
    pub unsafe fn cp_async(
        &self,
        dst: *mut u8,
        src: *const u8,
        bytes: usize,
        src_bytes: usize,
        site: Site,
    ) {
        let operation = "cp_async";
        if !matches!(bytes, 4 | 8 | 16) || src_bytes > bytes {
            self.invalid(
                site,
                operation,
                format!(
                    "{src_bytes} bytes into {bytes}; needed are 4, 8 or 16, and no more in the \
                     source"
                ),
            );
        }
        if !dst.addr().is_multiple_of(bytes) || src_bytes > 0 && !src.addr().is_multiple_of(bytes) {
            self.invalid(
                site,
                operation,
                format!(
                    "{bytes} bytes from {:#x} to {:#x}; both must be multiples of {bytes}",
                    src.addr(),
                    dst.addr()
                ),
            );
        }
        let poison = self.launch.options.poison.word();
        // SAFETY: the caller promises that `dst` is valid for these writes, and `src` for
        // `src_bytes`; if they are not, that is the kernel's fault, which `access` reports.
        self.access(site, || unsafe {
            read_all(src, src_bytes);
            fill_words(dst, bytes, poison);
        });
        self.slot()
            .copies
            .borrow_mut()
            .get_or_insert_default()
            .open
            .push(AsyncCopy {
                dst,
                src,
                bytes,
                src_bytes,
            });
    }

    pub fn cp_async_commit(&self) {
        let mut copies = self.slot().copies.borrow_mut();
        let copies = copies.get_or_insert_default();
        let group = std::mem::take(&mut copies.open);
        copies.groups.push_back(group);
    }

    /// Makes the copies of all groups except the `pending` most recent.
    pub fn cp_async_wait(&self, pending: u32, site: Site) {
        loop {
            let group = {
                let mut copies = self.slot().copies.borrow_mut();
                let Some(copies) = copies.as_mut() else {
                    return;
                };
                if copies.groups.len() <= pending as usize {
                    return;
                }
                copies.groups.pop_front()
            };
            for copy in group.into_iter().flatten() {
                // SAFETY: the caller of `cp_async` promised that both sides stay
                // valid until now; if they are not, `access` reports it.
                self.access(site, || unsafe {
                    ptr::copy(copy.src, copy.dst, copy.src_bytes);
                    ptr::write_bytes(copy.dst.add(copy.src_bytes), 0, copy.bytes - copy.src_bytes);
                });
            }
        }
    }
}

/// Reads a copy's source, so that a fault is found where the copy starts. A device reads it
/// whether or not the kernel waits for the copy.
///
/// # Safety
///
/// `src` is valid for reads of `bytes` bytes, which are at most 16.
unsafe fn read_all(src: *const u8, bytes: usize) {
    let mut read = [0_u8; 16];
    // SAFETY: the caller promises both; `read` is a variable of this function.
    unsafe { ptr::copy_nonoverlapping(src, read.as_mut_ptr(), bytes) };
    hint::black_box(&read);
}
