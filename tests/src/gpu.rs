//! Every family on a GPU through wgpu, real or in software: against the reference's golden data, and one way of reading
//! against the other.
//!
//! Burn fuses operations into kernels of its own making, and has made wrong ones before: everything is done once with and once
//! without.

use std::{env, process::Command, sync::LazyLock};

use burn::tensor::{Device, wgpu::wgpu::Backend};
use cwm_models::Model;
use cwm_tests::{
    families::{Family, batch, check_answers, check_chunks, check_forms, check_steps, logits},
    reference::Golden,
};

static DEVICE: LazyLock<Device> = LazyLock::new(|| {
    let (device, setup) = Device::wgpu_options().init_with_setup().expect("a GPU");
    let adapter = setup.adapter.get_info();
    // OpenGL would be taken in silence, and lacks what compute shaders need.
    assert_ne!(adapter.backend, Backend::Gl, "no better interface than OpenGL on {adapter:?}");
    eprintln!("{} ({:?}, {})", adapter.name, adapter.backend, adapter.driver_info);
    device
});

/// Asked for 0, Burn fuses nothing.
const FUSION: &str = "BURN_FUSION_MAX_EXPLORATIONS";

/// Runs all the others in another process, where nothing is fused.
#[test]
fn all_others_hold_without_fusion() {
    if env::var(FUSION).is_ok_and(|explorations| explorations == "0") {
        return;
    }
    let output = Command::new(env::current_exe().unwrap())
        .env(FUSION, "0")
        .args(["--test-threads", "1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("test result: ok. 42 passed"), "{said}");
}

/// Blocks of every kind: of one number, of several, the largest that registers take, and one too large for them.
#[test]
fn own_kernels_equal_burns_operations() {
    for (name, shape) in [
        ("slice_diagonal", (3, 7)),
        ("slice_block", (3, 5)),
        ("slice_block", (1, 16)),
        ("slice_block", (1, 17)),
    ] {
        eprintln!("{name} of shape {shape:?}");
        let model = Family::of(name).model(shape, 1, 0.0, 7, &DEVICE);
        check_forms(model, &[131, 1, 64, 7, 1], 5);
    }
}

/// A layer of the family called `name` on `device`.
fn model(name: &str, device: &Device) -> Model {
    Family::of(name).model((3, 7), 1, 0.0, 7, device)
}

/// A module of tests for each family.
macro_rules! gpu {
    ($($name:ident),*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn outputs_of_every_layer_equal_the_references() {
                let golden = Golden::of(stringify!($name));
                golden.check_outputs("GPU", &golden.model(&DEVICE), 1e-3);
            }

            #[test]
            fn loss_and_gradients_equal_the_references() {
                let golden = Golden::of(stringify!($name));
                golden.check_gradients("GPU", golden.model(&DEVICE), 5e-5, (1e-3, 1e-3));
            }

            #[test]
            fn answers_equal_the_cpus() {
                let batch = batch(&[600, 1, 77], 3);
                let name = stringify!($name);
                let [gpu, cpu] = [&*DEVICE, &Device::flex()].map(|device| logits(&model(name, device), &batch));
                let apart = check_answers("GPU and CPU", &gpu, &cpu, 1e-3);
                println!("{name}: GPU and CPU are up to {apart:.1e} apart");
            }

            #[test]
            fn reading_move_by_move_equals_reading_at_once_over_600_steps() {
                let name = stringify!($name);
                check_steps(name, &model(name, &DEVICE));
            }

            #[test]
            fn chunks_of_any_length_give_one_answer() {
                let name = stringify!($name);
                check_chunks(name, model(name, &DEVICE), &[7, 64, 1000], 1e-3);
            }
        })*
    };
}

gpu! {
    transformer, slice_block, slice_diagonal, gated_deltanet_neg, gated_deltanet_pos, mamba2, mamba3_siso, mamba3_mimo
}
