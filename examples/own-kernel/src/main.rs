//! Grows a pattern from a few drops, and draws it.

use own_kernel_kernels::Reaction;

const SIZE: u32 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args()
        .nth(1)
        .map_or(Ok(4000), |steps| steps.parse())?;
    let device = own_kernel::device()?;

    let mut v = vec![0.0; (SIZE * SIZE) as usize];
    for [x, y] in [[30, 40], [64, 64], [90, 36], [44, 98], [100, 90]] {
        for point in (0..64).map(|n| (y + n / 8) * SIZE + x + n % 8) {
            v[point as usize] = 0.5;
        }
    }
    let u: Vec<f32> = v.iter().map(|v| 1.0 - v).collect();

    let corals = Reaction {
        diffusion_u: 0.16,
        diffusion_v: 0.08,
        feed: 0.0545,
        kill: 0.062,
    };
    let mut dish = own_kernel::dish(&device, corals, SIZE as usize, &u, &v)?;
    dish.steps(steps)?;
    let v = dish.to_vec(1)?;
    let picture = image::GrayImage::from_fn(SIZE, SIZE, |x, y| {
        image::Luma([(v[(y * SIZE + x) as usize] * 600.0) as u8])
    });
    picture.save("pattern.png")?;
    println!("{steps} steps on {}: see pattern.png", device.name());
    Ok(())
}
