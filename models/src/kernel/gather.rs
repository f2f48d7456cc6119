//! The embedding: rows of a table, and their gradients back into it.

/// `table [V, D]`, row numbers `[N]` to `[N, D]`.
pub fn forward(table: &[f32], rows: &[u32], width: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(rows.len() * width);
    for &row in rows {
        let first = row as usize * width;
        out.extend_from_slice(&table[first..first + width]);
    }
    out
}

/// From `dy [N, D]`: the gradient of the whole table, `[V, D]`.
pub fn backward(dy: &[f32], rows: &[u32], width: usize, table_rows: usize) -> Vec<f32> {
    let mut d_table = vec![0.0; table_rows * width];
    for (&row, dy) in rows.iter().zip(dy.chunks_exact(width)) {
        let first = row as usize * width;
        for (sum, dy) in d_table[first..first + width].iter_mut().zip(dy) {
            *sum += dy;
        }
    }
    d_table
}
