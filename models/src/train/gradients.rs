//! Between Burn's modules and the trainer's plain numbers: leaves, gradients and their sums.

use burn::module::{ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use multiversion::multiversion;

use crate::{Model, model::numbers, parallel};

/// Sums over the micro-batches of a lane.
#[derive(Default)]
pub(super) struct GradientSum {
    loss: f64,
    gradients: Vec<Vec<f32>>,
}

impl GradientSum {
    /// Adds what one micro-batch gave.
    pub(super) fn add(&mut self, loss: Tensor<1>, gradients: Gradients, replica: &Model) {
        let loss = numbers(loss.inner().into_data());
        self.loss += loss.iter().map(|&x| f64::from(x)).sum::<f64>();
        replica.visit(&mut Adder { sums: &mut self.gradients, gradients, next: 0 });
    }
}

/// Adds up lanes in their order.
pub(super) fn add_lanes(lanes: Vec<GradientSum>) -> (f64, Vec<Vec<f32>>) {
    const SEGMENT: usize = 1 << 15;
    let loss = lanes.iter().map(|lane| lane.loss).sum();
    let mut lanes = lanes.into_iter().map(|lane| lane.gradients);
    let Some(mut sums) = lanes.next() else { return (loss, Vec::new()) };
    let others: Vec<Vec<Vec<f32>>> = lanes.collect();
    let mut tasks = Vec::new();
    for (i, sum) in sums.iter_mut().enumerate() {
        for (segment, part) in sum.chunks_mut(SEGMENT).enumerate() {
            tasks.push((i, segment * SEGMENT, part));
        }
    }
    parallel::map(tasks, |(i, first, part)| {
        for lane in &others {
            add(part, &lane[i][first..first + part.len()]);
        }
    });
    (loss, sums)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn add(sum: &mut [f32], x: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(x) {
        *sum += x;
    }
}

/// Adds each parameter's gradient to the sums.
struct Adder<'a> {
    sums: &'a mut Vec<Vec<f32>>,
    gradients: Gradients,
    next: usize,
}

impl ModuleVisitor for Adder<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let gradient = tensor.grad_remove(&mut self.gradients).map(Tensor::into_data);
        match (self.sums.get_mut(self.next), gradient) {
            (Some(sum), Some(data)) => match data.as_slice::<f32>() {
                Ok(gradient) => add(sum, gradient),
                Err(_) => add(sum, &numbers(data)),
            },
            (None, Some(data)) => self.sums.push(numbers(data)),
            (None, None) => self.sums.push(vec![0.0; tensor.dims().iter().product()]),
            (Some(_), None) => {}
        }
        self.next += 1;
    }
}

/// Reads parameters in order.
#[derive(Default)]
pub(super) struct Values(Vec<Vec<f32>>);

impl Values {
    pub(super) fn of(model: &Model) -> Vec<Vec<f32>> {
        let mut values = Values::default();
        model.visit(&mut values);
        values.0
    }
}

impl ModuleVisitor for Values {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(numbers(param.val().into_data()));
    }
}

/// Writes parameters in order.
pub(super) struct Writer<'a> {
    parameters: &'a [Vec<f32>],
    next: usize,
    device: &'a Device,
}

impl<'a> Writer<'a> {
    pub(super) fn new(parameters: &'a [Vec<f32>], device: &'a Device) -> Self {
        Writer { parameters, next: 0, device }
    }
}

impl ModuleMapper for Writer<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let data = self.parameters[self.next].clone();
        self.next += 1;
        param.map(|old| Tensor::from_data(TensorData::new(data, old.dims()), self.device))
    }
}

/// Makes every parameter a leaf of a new graph.
pub(super) struct Leaves;

impl ModuleMapper for Leaves {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.autodiff().require_grad())
    }
}
