//! The forms of the operations, and the two ways of reading a game, compute the same, for every family
//! ([`cwm_tests::families`]).

use burn::tensor::Device;
use cwm_models::Model;
use cwm_tests::families::{FAMILIES, Family, check_chunks, check_forms, check_steps};
use proptest::prelude::*;

/// A module of tests for each family.
macro_rules! forms {
    ($($name:ident),*) => {
        $(mod $name {
            use super::*;

            /// On the CPU.
            fn model((a, b): (usize, usize), layers: usize, dropout: f64, seed: u64) -> Model {
                let family = Family::of(stringify!($name));
                family.model((a, b), layers, dropout, seed, &Device::flex())
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(24))]

                /// Odd widths, ragged lengths around the borders of blocks, games of one step, with and without dropout.
                #[test]
                fn fused_equals_portable(
                    a in 1_usize..4, b in 1_usize..20, layers in 1_usize..3,
                    lengths in prop::collection::vec(
                        prop_oneof![Just(1_u32), 2_u32..20, 60_u32..70, 120_u32..135], 1..5),
                    dropout in prop_oneof![Just(0.0), 0.05..0.6], seed: u64,
                ) {
                    check_forms(model((a, b), layers, dropout, seed), &lengths, seed);
                }
            }

            #[test]
            fn reading_move_by_move_equals_reading_at_once_over_600_steps() {
                let fused = model((3, 7), 2, 0.1, 7);
                let name = stringify!($name);
                check_steps(&format!("{name} portable"), &fused.clone().into_portable());
                check_steps(&format!("{name} fused"), &fused);
            }

            #[test]
            fn chunks_of_any_length_give_one_answer() {
                // Of a few steps, of as many as a game has, and of more.
                let model = model((2, 8), 2, 0.0, 9);
                check_chunks(stringify!($name), model, &[2, 7, 16, 64, 131, 1000], 1e-4);
            }
        })*

        #[test]
        fn every_family_is_tested() {
            assert_eq!(FAMILIES.each_ref().map(|family| family.name), [$(stringify!($name)),*]);
        }
    };
}

forms! {
    transformer, slice_block, slice_diagonal, gated_deltanet_neg, gated_deltanet_pos, mamba2, mamba3_siso, mamba3_mimo
}
