//! Finds how much memory the system has left. Linux promises more than it has, and would kill the
//! process later; this refuses a request that is too large.

use std::io;

/// The least size in bytes for which the available memory is checked.
const LARGE: usize = 4 << 20;

/// Refuses `bytes` that are about to be written if the system does not have them.
pub(crate) fn require(bytes: usize) -> io::Result<()> {
    if bytes < LARGE {
        return Ok(());
    }
    match available() {
        Some(available) if available < bytes as u64 => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!("{bytes} bytes, of which the system has {available} left"),
        )),
        _ => Ok(()),
    }
}

/// An empty vector with room for `len` bytes that are about to be written.
pub(crate) fn reserve(len: usize) -> io::Result<Vec<u8>> {
    require(len)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok(bytes)
}

/// The bytes that can be used without the system's killing a process for them; `None` where the
/// system does not say.
#[cfg(target_os = "linux")]
fn available() -> Option<u64> {
    let of_system = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let available = field(&text, "MemAvailable:")?;
            let swap = field(&text, "SwapFree:").unwrap_or(0);
            Some((available + swap) * 1024)
        });
    // The nearest group with a limit, of the second version (one tree) or the first.
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (tree, names) = match controllers {
            "" => ("/sys/fs/cgroup", GROUP_2),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", GROUP_1)
            }
            _ => return None,
        };
        std::path::Path::new(path)
            .ancestors()
            .filter_map(|group| {
                let group = group.strip_prefix("/").unwrap_or(group);
                left_in_group(&std::path::Path::new(tree).join(group), names)
            })
            .min()
    });
    of_groups.chain(of_system).min()
}

#[cfg(not(target_os = "linux"))]
fn available() -> Option<u64> {
    None
}

/// Files of a memory group: limit, use, statistics, and the statistics' line of memory that can be
/// dropped at once.
#[cfg(target_os = "linux")]
type GroupFiles = [&'static str; 4];
#[cfg(target_os = "linux")]
const GROUP_2: GroupFiles = [
    "memory.max",
    "memory.current",
    "memory.stat",
    "inactive_file",
];
#[cfg(target_os = "linux")]
const GROUP_1: GroupFiles = [
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.stat",
    "total_inactive_file",
];

#[cfg(target_os = "linux")]
fn left_in_group(group: &std::path::Path, [limit, used, stat, idle]: GroupFiles) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    // "max" is not a number: the group has no limit.
    let (limit, used) = (number(limit)?, number(used)?);
    let idle = read(stat).and_then(|text| field(&text, idle)).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(idle)))
}

/// The number after `name` in lines of names and numbers.
#[cfg(target_os = "linux")]
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_system_has_is_refused() {
        assert!(require(0).is_ok());
        assert!(require(LARGE).is_ok());
        assert!(reserve(usize::MAX).is_err());
        if cfg!(target_os = "linux") {
            assert!(require(1 << 50).is_err());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn fields_of_the_system_files() {
        let text = "MemTotal: 100 kB\nMemAvailable:   42 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(42));
        assert_eq!(field(text, "SwapFree:"), None);
    }
}
