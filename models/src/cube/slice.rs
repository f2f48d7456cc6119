//! SLiCE's recurrence, `y_t = (I + A_t) y_(t-1) + b_t` block by block, in one kernel each way.
//!
//! A unit takes one block of one game through all its steps and keeps the block's state in registers, so nothing is shared
//! between units, nothing waits, and games of any lengths need no padding. Transitions lie by column, row and block, so
//! that neighbouring units read neighbouring numbers. Each transition is read once a pass; the bytes of that are the floor.

use burn::tensor::{DType, Shape, TensorData};
use burn_cubecl::{
    CubeBackend,
    cubecl::{self, calculate_cube_count_elemwise, prelude::*},
    kernel::into_contiguous,
    ops::numeric::empty_device_contiguous_dtype,
    tensor::CubeTensor,
};

/// The largest block whose state and transition a unit can hold; loops over it are unrolled.
pub(crate) const BLOCK_MAX: usize = 16;

#[cube(launch, address_type = "dynamic")]
fn forward_kernel(
    transitions: &Tensor<f32>,
    inputs: &Tensor<f32>,
    init: &Tensor<f32>,
    starts: &Tensor<u32>,
    states: &mut Tensor<f32>,
    #[comptime] block: usize,
) {
    let width = init.len();
    let blocks = width / block;
    let games = starts.len() - 1;
    if ABSOLUTE_POS >= games * blocks {
        terminate!();
    }
    let game = ABSOLUTE_POS / blocks;
    let place = ABSOLUTE_POS % blocks;
    let first = place * block;

    let mut state = Array::<f32>::new(block);
    #[unroll]
    for i in 0..block {
        state[i] = init[first + i];
    }
    let mut moved = Array::<f32>::new(block);
    for row in starts[game]..starts[game + 1] {
        let row = row as usize;
        let vector = row * width + first;
        let matrix = row * width * block + place;
        #[unroll]
        for i in 0..block {
            moved[i] = state[i] + inputs[vector + i];
        }
        #[unroll]
        for j in 0..block {
            #[unroll]
            for i in 0..block {
                moved[i] += transitions[matrix + (j * block + i) * blocks] * state[j];
            }
        }
        #[unroll]
        for i in 0..block {
            state[i] = moved[i];
            states[vector + i] = moved[i];
        }
    }
}

/// Back through time: what reaches a state is its own gradient and what its successor passes on.
#[cube(launch, address_type = "dynamic")]
fn backward_kernel(
    gradient: &Tensor<f32>,
    states: &Tensor<f32>,
    transitions: &Tensor<f32>,
    init: &Tensor<f32>,
    starts: &Tensor<u32>,
    to_transitions: &mut Tensor<f32>,
    to_states: &mut Tensor<f32>,
    #[comptime] block: usize,
) {
    let width = init.len();
    let blocks = width / block;
    let games = starts.len() - 1;
    if ABSOLUTE_POS >= games * blocks {
        terminate!();
    }
    let game = ABSOLUTE_POS / blocks;
    let place = ABSOLUTE_POS % blocks;
    let first = place * block;
    let start = starts[game] as usize;
    let end = starts[game + 1] as usize;

    let mut passed = Array::<f32>::new(block);
    #[unroll]
    for i in 0..block {
        passed[i] = 0.0;
    }
    let mut before = Array::<f32>::new(block);
    let mut reaching = Array::<f32>::new(block);
    for steps_behind in 0..end - start {
        let row = end - 1 - steps_behind;
        let vector = row * width + first;
        let matrix = row * width * block + place;
        if row == start {
            #[unroll]
            for j in 0..block {
                before[j] = init[first + j];
            }
        } else {
            #[unroll]
            for j in 0..block {
                before[j] = states[vector - width + j];
            }
        }
        #[unroll]
        for i in 0..block {
            reaching[i] = passed[i] + gradient[vector + i];
            passed[i] = reaching[i];
            to_states[vector + i] = reaching[i];
        }
        #[unroll]
        for j in 0..block {
            #[unroll]
            for i in 0..block {
                let entry = matrix + (j * block + i) * blocks;
                to_transitions[entry] = reaching[i] * before[j];
                passed[j] += transitions[entry] * reaching[i];
            }
        }
    }
    let vector = starts[games] as usize * width + game * width + first;
    #[unroll]
    for i in 0..block {
        to_states[vector + i] = passed[i];
    }
}

/// States `[N, D]` from transitions `[N, D block]` (by column, row and block), inputs `[N, D]` and the first state `[D]`,
/// over games of these lengths.
pub(crate) fn forward(
    [transitions, inputs, init]: [CubeTensor; 3],
    lengths: &[u32],
    block: usize,
) -> CubeTensor {
    let [transitions, inputs, init] = [transitions, inputs, init].map(into_contiguous);
    let states = like(&inputs, inputs.meta.shape().clone());
    let starts = starts(lengths, &inputs);
    let (count, dim) = units(&inputs, lengths.len(), block);
    forward_kernel::launch(
        &states.client,
        count,
        dim,
        transitions.required_address_type(),
        transitions.into_tensor_arg(),
        inputs.into_tensor_arg(),
        init.into_tensor_arg(),
        starts.into_tensor_arg(),
        states.clone().into_tensor_arg(),
        block,
    );
    states
}

/// From the states' gradient `[N, D]`, the states and what made them: the gradients of the transitions, and `[N + games, D]`
/// that of the inputs with each game's share of the first state's behind.
pub(crate) fn backward(
    [gradient, states, transitions, init]: [CubeTensor; 4],
    lengths: &[u32],
    block: usize,
) -> (CubeTensor, CubeTensor) {
    let [gradient, states, transitions, init] =
        [gradient, states, transitions, init].map(into_contiguous);
    let to_transitions = like(&transitions, transitions.meta.shape().clone());
    let [rows, width] = states.meta.shape().dims();
    let to_states = like(&states, Shape::new([rows + lengths.len(), width]));
    let starts = starts(lengths, &states);
    let (count, dim) = units(&states, lengths.len(), block);
    backward_kernel::launch(
        &gradient.client.clone(),
        count,
        dim,
        transitions.required_address_type(),
        gradient.into_tensor_arg(),
        states.into_tensor_arg(),
        transitions.into_tensor_arg(),
        init.into_tensor_arg(),
        starts.into_tensor_arg(),
        to_transitions.clone().into_tensor_arg(),
        to_states.clone().into_tensor_arg(),
        block,
    );
    (to_transitions, to_states)
}

/// Room for numbers of this shape beside `tensor`.
fn like(tensor: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_device_contiguous_dtype(tensor.client.clone(), tensor.device.clone(), shape, DType::F32)
}

/// The first row of each game, and the row behind the last.
fn starts(lengths: &[u32], beside: &CubeTensor) -> CubeTensor {
    use burn::backend::ops::IntTensorOps;
    let mut rows = 0;
    let mut starts = vec![0];
    starts.extend(lengths.iter().map(|steps| {
        rows += steps;
        rows
    }));
    let count = starts.len();
    CubeBackend::int_from_data(TensorData::new(starts, [count]), &beside.device)
}

/// A unit for each block of each game.
fn units(states: &CubeTensor, games: usize, block: usize) -> (CubeCount, CubeDim) {
    let [_, width] = states.meta.shape().dims();
    let units = games * (width / block);
    let dim = CubeDim::new(&states.client, units);
    (calculate_cube_count_elemwise(&states.client, units, dim), dim)
}
