//! Lets a pattern grow from a few drops, and draws it.

use own_kernel_kernels::GrayScott;

const SIZE: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args()
        .nth(1)
        .map_or(Ok(4000), |steps| steps.parse())?;
    let device = own_kernel::device()?;

    let mut v = vec![0.0; SIZE * SIZE];
    for [x, y] in [[30, 40], [64, 64], [90, 36], [44, 98], [100, 90]] {
        for point in (0..64).map(|n| (y + n / 8) * SIZE + x + n % 8) {
            v[point] = 0.5;
        }
    }
    let u: Vec<f32> = v.iter().map(|v| 1.0 - v).collect();

    let corals = GrayScott {
        diffusion_u: 0.16,
        diffusion_v: 0.08,
        feed: 0.0545,
        kill: 0.062,
    };
    let mut run = own_kernel::dish(SIZE, SIZE, corals)?.start(&device, [&u, &v])?;
    run.steps(steps)?;

    let v = run.to_vec(1)?;
    let picture = image::GrayImage::from_fn(SIZE as u32, SIZE as u32, |x, y| {
        image::Luma([(v[y as usize * SIZE + x as usize] * 600.0) as u8])
    });
    picture.save("pattern.png")?;
    println!("{steps} steps on {}: see pattern.png", device.name());
    Ok(())
}
