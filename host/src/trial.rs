//! Finds the faster of two ways to do work that comes in pieces, while it does the work.
//!
//! Both ways give the same results. Which of them is faster on large arrays depends on the
//! processor, and no property of it that a program can ask for tells: prefetches take a sixth off
//! a sum's time on one processor and add half to it on another (docs/tuning/reduction.md). So the
//! first pieces are done in turns, and timed; of many passes over fields, some later ones too.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

/// One pair of pieces is timed for this many pieces.
const PIECES_PER_PAIR: usize = 64;

/// The most pairs.
const MOST_PAIRS: usize = 7;

/// The number of passes over fields for a trial of them: it takes a small part of so many.
const PASSES: usize = 256;

/// A trial of passes is repeated after this many more passes, and then each time after [`LONGER`]
/// times as many.
const AGAIN: usize = 64;
const LONGER: usize = 16;

/// The trial of one thread's share of the work.
#[derive(Debug)]
pub(crate) struct Trial {
    /// The second way wins a pair if its time is shorter than that of the first way times this.
    allowance: f64,
    /// The number of pieces that are timed: one, whose start is slow either way, and the pairs.
    timed: usize,
    /// The number of pieces that were done for this trial, timed or not.
    done: usize,
    /// The trial is repeated after this many pieces.
    until: usize,
    /// The time of the first piece of a pair.
    other: Duration,
    /// The number of pairs that the second way won, less the number that the first way won.
    lead: isize,
}

impl Trial {
    /// A trial for about this many pieces. Few pieces are all done in the first way.
    pub(crate) fn of(pieces: usize) -> Self {
        let timed = match pieces / PIECES_PER_PAIR {
            0 => 0,
            // One of the ways wins more of an odd number of pairs.
            pairs => 1 + 2 * ((pairs.min(MOST_PAIRS) - 1) | 1),
        };
        Self {
            allowance: 1.0,
            timed,
            done: 0,
            until: usize::MAX,
            other: Duration::ZERO,
            lead: 0,
        }
    }

    /// A trial of passes over fields. It is repeated at growing intervals, because the other way may
    /// be faster soon after the fields were allocated, or while other programs run.
    pub(crate) fn of_passes() -> Self {
        let once = Self::of(PASSES);
        Self {
            until: once.timed + AGAIN,
            ..once
        }
    }

    /// Sets how much longer a piece may take in the second way, as a factor, because it saves time
    /// in other pieces.
    pub(crate) fn with_allowance(self, allowance: f64) -> Self {
        Self { allowance, ..self }
    }

    /// Calls `piece` with whether to do it in the second way.
    #[inline(always)]
    pub(crate) fn run<R>(&mut self, piece: impl FnOnce(bool) -> R) -> R {
        if self.done == self.until {
            self.until = self.timed + LONGER * (self.until - self.timed);
            (self.done, self.lead) = (0, 0);
        }
        if let Some(second) = self.winner() {
            self.done += 1;
            return piece(second);
        }
        let start = Instant::now();
        let result = piece(self.second());
        self.took(start.elapsed());
        result
    }

    /// Whether the second way has won; `None` while pieces are timed.
    pub(crate) fn winner(&self) -> Option<bool> {
        (self.done >= self.timed).then_some(self.lead > 0)
    }

    /// Whether the next timed piece is done in the second way: the pairs begin with the first way
    /// and with the second in turns.
    fn second(&self) -> bool {
        matches!(self.done % 4, 2 | 3)
    }

    /// Takes the time of a piece.
    fn took(&mut self, time: Duration) {
        if self.done > 0 && self.done.is_multiple_of(2) {
            let [first, second] = match self.second() {
                true => [self.other, time],
                false => [time, self.other],
            };
            self.lead += match second < first.mul_f64(self.allowance) {
                true => 1,
                false => -1,
            };
        }
        self.other = time;
        self.done += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times pieces, which take `times` in µs in each way, and returns how many were done in the
    /// second way before the trial was over, and whether the rest was.
    fn run(mut trial: Trial, mut times: impl FnMut(usize) -> [u64; 2]) -> (usize, bool) {
        let mut seconds = 0;
        while trial.done < trial.timed {
            let second = trial.second();
            seconds += usize::from(second);
            trial.took(Duration::from_micros(
                times(trial.done)[usize::from(second)],
            ));
        }
        (seconds, trial.run(|second| second))
    }

    #[test]
    fn the_faster_way_does_the_rest() {
        for pieces in [64, 128, 1000, 1 << 20] {
            assert!(run(Trial::of(pieces), |_| [5, 4]).1);
            assert!(!run(Trial::of(pieces), |_| [4, 5]).1);
            // Both become faster from piece to piece.
            assert!(
                run(Trial::of(pieces), |done| [
                    900 - 40 * done as u64,
                    899 - 40 * done as u64
                ])
                .1
            );
        }
    }

    #[test]
    fn few_interruptions_do_not_change_the_winner() {
        let interrupted = |done| if matches!(done, 0 | 1 | 6) { 1000 } else { 0 };
        let times = |done| [5, 4].map(|time| time + interrupted(done));
        assert!(run(Trial::of(1 << 20), times).1);
        let times = |done| [4, 5].map(|time| time + interrupted(done));
        assert!(!run(Trial::of(1 << 20), times).1);
    }

    #[test]
    fn an_allowance_is_for_the_second_way() {
        assert!(run(Trial::of(64).with_allowance(1.25), |_| [100, 124]).1);
        assert!(!run(Trial::of(64).with_allowance(1.25), |_| [100, 126]).1);
    }

    #[test]
    fn a_trial_of_passes_is_repeated() {
        let mut trial = Trial::of_passes();
        // First the first way is faster, then the second, then the first again.
        for (round, times) in (0..).zip([[4, 5], [5, 4], [4, 5]]) {
            let rest = AGAIN * LONGER.pow(round);
            while trial.winner().is_none() {
                let second = usize::from(trial.second());
                trial.took(Duration::from_micros(times[second]));
            }
            let faster = times[1] < times[0];
            for _ in 0..rest {
                assert_eq!(trial.run(|second| second), faster);
            }
            assert_eq!(trial.done, trial.until);
            // The first piece of the next trial is not timed.
            assert!(!trial.run(|second| second));
        }
    }

    #[test]
    fn a_trial_takes_a_small_part_of_the_pieces() {
        assert_eq!(run(Trial::of(63), |_| [5, 4]), (0, false));
        for pieces in 64..2000 {
            let timed = Trial::of(pieces).timed;
            assert!(timed % 4 == 3 && timed * 20 <= pieces, "{pieces}: {timed}");
        }
        assert_eq!(run(Trial::of(usize::MAX), |_| [5, 4]), (7, true));
    }
}
