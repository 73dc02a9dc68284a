//! Smooths a step function and prints it.

fn main() {
    let step: Vec<f32> = (0..8).map(|i| if i < 4 { 0.0 } else { 1.0 }).collect();
    #[cfg(feature = "gpu")]
    match template_name::smooth(&step) {
        Ok(smooth) => println!("on the GPU: {smooth:.2?}"),
        Err(error) => println!("no GPU ({error}); on the CPU:"),
    }
    println!("on the CPU: {:.2?}", template_name::smooth_on_cpu(&step));
}
