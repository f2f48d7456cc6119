//! The machine on soft feedback: not the most probable labels are read back but all classes by their probabilities.
//!
//! What a row of an input table is to a label, the mean of rows is to a distribution. A register holds the expected value
//! of its clock, a real number, and names the nearest integer. Games run one by one: this is an experiment, not a
//! way to grade fast.

use cwm_core::chess::label::{
    FULLMOVE, HALFMOVE, LABELS, LOGIT_OFFSETS, LOGITS, PIECE_CLASSES, SIDE, SQUARES, logit_range,
};

use super::{
    config::{Clocks, place},
    forward::Activations,
    heads,
    inputs::{Move, PIECE, soft_context_rows},
    network::Transition,
    registers,
};

/// A state of probabilities.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SoftState {
    /// Of every class of every label `[1878]`; a register's bytes are not kept here.
    probabilities: Vec<f32>,
    /// Expected values of the halfmove clock and the fullmove number.
    registers: [f64; 2],
    /// The labels that it names.
    pub labels: [u8; LABELS],
}

impl SoftState {
    /// Before START: all labels are surely 0.
    pub fn new() -> Self {
        let mut probabilities = vec![0.0; LOGITS];
        LOGIT_OFFSETS.iter().take(LABELS).for_each(|&first| probabilities[first] = 1.0);
        SoftState { probabilities, registers: [0.0; 2], labels: [0; LABELS] }
    }
}

impl Transition {
    /// Reads one token. Returns whether all logits were finite; they stay in `act`.
    pub(super) fn soft_step(
        &self,
        step: Move,
        state: &mut SoftState,
        act: &mut Activations,
    ) -> bool {
        let config = self.config();
        let (c, h) = (config.context_hidden, config.cell_hidden);
        let table = self.parameter(place::CONTEXT_INPUTS);
        act.first.clear();
        act.first.resize(c, 0.0);
        soft_context_rows(step, &state.probabilities, config.clocks, |row, weight| {
            add_weighted(&mut act.first, &table[row * c..(row + 1) * c], weight);
        });
        self.context_layers(1, act);

        let pieces = &self.parameter(place::CELL_INPUTS)[PIECE * h..];
        let (from, to) = (self.positions(0, step.from), self.positions(1, step.to));
        act.cell_first.resize(SQUARES * h, 0.0);
        for (cell, sum) in act.cell_first.chunks_exact_mut(h).enumerate() {
            sum.copy_from_slice(&act.cell_context);
            add_weighted(sum, &from[cell * h..(cell + 1) * h], 1.0);
            add_weighted(sum, &to[cell * h..(cell + 1) * h], 1.0);
            for (class, &p) in state.probabilities[logit_range(cell)].iter().enumerate() {
                add_weighted(sum, &pieces[class * h..(class + 1) * h], p);
            }
            // Unlike `max`, this lets NaN pass.
            sum.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x });
        }
        self.cell_layers(SQUARES, act);
        let (logits, copies) = act.logits.split_at_mut(PIECE_CLASSES * SQUARES);
        for (cell, copy) in copies[..SQUARES].iter().enumerate() {
            for (class, &p) in state.probabilities[logit_range(cell)].iter().enumerate() {
                logits[class * SQUARES + cell] += copy * p;
            }
        }
        self.soft_decode(state, act)
    }

    /// The next state from the logits.
    fn soft_decode(&self, state: &mut SoftState, act: &Activations) -> bool {
        let clocks = self.config().clocks;
        let before = state.labels;
        let finite = heads::decode_cells(&act.logits, SQUARES, 0, &mut state.labels)
            && act.heads.iter().all(|x| x.is_finite());
        heads::decode(&act.heads, clocks, &before, &mut state.labels);
        let (cells, others) = state.probabilities.split_at_mut(LOGIT_OFFSETS[SIDE]);
        heads::cell_probabilities(&act.logits, SQUARES, 0, cells);
        heads::probabilities(&act.heads, clocks, &before, others);
        if clocks == Clocks::Registers {
            for ((first, columns), value) in
                heads::registers(clocks).iter().zip(&mut state.registers)
            {
                *value = registers::expected(*value, &act.heads[columns.clone()]);
                // Saturates, and NaN becomes 0: such a step counts as wrong anyway.
                let named = value.round() as u16;
                state.labels[*first..*first + 2].copy_from_slice(&named.to_be_bytes());
            }
        }
        finite
    }
}

fn add_weighted(sum: &mut [f32], row: &[f32], weight: f32) {
    for (sum, x) in sum.iter_mut().zip(row) {
        *sum += weight * x;
    }
}

const _: () = assert!(HALFMOVE + 2 == FULLMOVE, "registers are named in this order");
