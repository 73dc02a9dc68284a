//! The instructions of newer GPUs, for sm_90, sm_100 and sm_120: NVIDIA's assembler takes them, and
//! each is the instruction it stands for. The kernels are in `fixtures/newer-kernels`.

mod support;

use cuda_builder::NvvmArch;
use support::{body, built, count, ptxas, side_by_side};

#[test]
fn newer_instructions_are_what_they_stand_for() {
    let targets = [
        NvvmArch::Compute90,
        NvvmArch::Compute100,
        NvvmArch::Compute120,
    ];
    side_by_side(targets, |arch| {
        let ptx = built("newer-kernels", arch);
        ptxas(&ptx.text, arch);
        assert_eq!(
            ptx.kernels,
            ["bulk", "bytes", "halves", "neighbours", "whole_grid"]
        );
        for (kernel, instruction, times) in [
            ("bulk", "mbarrier.init.b64", 1),
            ("bulk", "mbarrier.arrive.b64", 1),
            ("bulk", "mbarrier.arrive.expect_tx.shared::cta.b64", 1),
            ("bulk", "mbarrier.try_wait.parity.b64", 1),
            ("bulk", "cp.async.bulk.shared::cluster.global.mbarrier", 1),
            ("bulk", "cp.async.bulk.global.shared::cta.bulk_group", 1),
            ("bulk", "cp.async.bulk.wait_group 0", 1),
            ("neighbours", "mapa.u64", 1),
            ("neighbours", "barrier.cluster.arrive.release.aligned", 1),
            ("neighbours", "griddepcontrol.wait", 1),
            ("neighbours", "griddepcontrol.launch_dependents", 1),
            ("halves", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 1),
            (
                "halves",
                "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
                1,
            ),
            (
                "halves",
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                1,
            ),
            (
                "halves",
                "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                1,
            ),
            (
                "bytes",
                "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
                1,
            ),
        ] {
            let body = body(&ptx.text, kernel);
            let found: usize = body
                .iter()
                .map(|line| line.matches(instruction).count())
                .sum();
            assert_eq!(
                found,
                times,
                "{instruction} in {kernel} for {arch}:\n{}",
                body.join("\n")
            );
        }
        assert_eq!(count(&body(&ptx.text, "whole_grid"), "atom.acq_rel.gpu"), 1);
    });
}
