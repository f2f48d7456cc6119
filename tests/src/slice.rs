//! What is SLiCE's own: a recurrence that can grow without bound.

use burn::tensor::Device;
use cwm_core::{
    chess::{Trajectory, random::RandomPlay},
    tracker::{Tracker, ready},
};
use cwm_models::{Model, ModelConfig, Predictor, SliceConfig};

/// A network whose state overflows in the middle of a game is graded, its overflown steps as wrong.
#[test]
fn states_that_overflow_are_graded_as_wrong() {
    for block_size in [1, 8] {
        let config = ModelConfig::Slice(SliceConfig::new(16, 1, block_size));
        let mut model = Model::new(&config, 0, &Device::flex()).unwrap();
        let mut parameters = model.named_parameters();
        // Along time alone, so that every step multiplies the state by the same large factor.
        let a = parameters.get_mut("layers.0.slice.vf_A.weight").unwrap();
        a.data.chunks_exact_mut(17).for_each(|row| row[0] = 20.0);
        model.load_named_parameters(&parameters).unwrap();

        let games: Vec<Trajectory> = RandomPlay::new(0, 10)
            .filter(|game| game.moves.len() >= 150)
            .take(3)
            .map(|game| Trajectory::replay(&game.moves[..150]))
            .collect();
        let games: Vec<&Trajectory> = games.iter().collect();
        for model in [model.clone(), model.into_portable()] {
            let form = if model.is_fused() { "fused" } else { "portable" };
            let place = format!("{form}, blocks of {block_size}");
            let predictor = Predictor::new("overflow", model);
            for (game, prediction) in
                games.iter().zip(ready(predictor.grade(&games)).unwrap().unwrap())
            {
                assert_eq!(prediction.states.len(), game.steps(), "{place}");
                let bad = &prediction.non_finite_steps;
                assert!(!bad.is_empty() && bad.len() < game.steps(), "{place}: {}", bad.len());
                assert_eq!(bad.last(), Some(&(game.steps() - 1)), "{place}: it does not recover");
            }

            // Followed move by move it goes on as well.
            let mut memory = predictor.start(1);
            for &token in games[0].tokens() {
                assert_eq!(ready(predictor.push(&mut memory, &[token])).unwrap().unwrap().len(), 1);
            }
        }
    }
}
