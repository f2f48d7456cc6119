//! Numbers as people read them in tables.

/// A count in three digits, if it is large: `39.8 M`.
pub(super) fn short_count(count: u64) -> String {
    match count {
        10_000_000.. => format!("{:.1} M", count as f64 / 1e6),
        100_000.. => format!("{:.2} M", count as f64 / 1e6),
        _ => grouped(count),
    }
}

/// A mean loss with four decimals, or in powers of ten where those would say nothing.
pub fn short_loss(mean: f64) -> String {
    if mean != 0.0 && !(1e-3..1e4).contains(&mean) {
        format!("{mean:.2e}")
    } else {
        format!("{mean:.4}")
    }
}

/// An integer with its digits in groups of three: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
