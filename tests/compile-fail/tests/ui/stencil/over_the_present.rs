use halo_stencil::{Neighbourhood, PointUpdate, Reach, stencil};

#[derive(Clone, Copy)]
pub struct Rope;

impl PointUpdate<f32, 3, 1> for Rope {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(1), Reach::POINT, Reach::POINT];
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        [n.at::<0, 1, 0, 0>() - n.at::<1, 0, 0, 0>() * n.at::<2, 0, 0, 0>()]
    }
}

stencil! {
    /// A step of the rope.
    pub rope: Rope, f32, (u, past, courant) -> (new over u)
}

fn main() {}
