//! Reads through textures.

use std::ptr;

use super::state::Block;
use crate::diagnosis::{Access, Diagnosis};
use crate::here::Site;
use crate::region::Offset;
use crate::texture::Texture;
impl Block<'_> {
    pub fn texture_linear(&self, handle: u64, index: i32, site: Site) -> f32 {
        let texture = self.texture("tex1d_fetch", handle, site);
        let element = texture.linear(index);
        self.fetch("tex1d_fetch", handle, texture, element, site)
    }

    pub fn texture_planar(&self, handle: u64, x: f32, y: f32, site: Site) -> f32 {
        let texture = self.texture("tex2d", handle, site);
        let element = texture.planar(x, y);
        self.fetch("tex2d", handle, texture, element, site)
    }

    pub(super) fn texture(&self, operation: &'static str, handle: u64, site: Site) -> &Texture {
        match self.launch.textures.get(&handle) {
            Some(texture) => texture,
            None => self.invalid(
                site,
                operation,
                format!("{handle} is not the handle of a texture bound at the time of the launch"),
            ),
        }
    }

    pub(super) fn fetch(
        &self,
        operation: &'static str,
        handle: u64,
        texture: &Texture,
        element: Result<Option<u64>, &'static str>,
        site: Site,
    ) -> f32 {
        match element {
            Ok(None) => 0.0,
            Ok(Some(address)) if texture.record.freed() => self.fail(Diagnosis::UseAfterFree {
                at: self.here(site),
                access: Access::Read,
                memory: texture.record.name(),
                offset: texture
                    .record
                    .region
                    .locate(address as usize)
                    .map_or(0, |Offset(offset)| offset),
            }),
            Ok(Some(address)) => {
                let element = ptr::with_exposed_provenance::<f32>(address as usize);
                // SAFETY: the address is inside the allocation the texture was
                // bound to, aligned to four. If that is freed at this very
                // moment the read faults (the texture keeps its address range
                // taken), and `access` makes that a diagnosis.
                self.access(site, || unsafe { element.read_volatile() })
            }
            Err(wrong) => self.invalid(site, operation, format!("texture {handle} {wrong}")),
        }
    }
}
