/** Numbers as people read them. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `1536` as `1.5 KiB`. */
export function showBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

/** `1536` as `1,536`. */
export function showCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** How long ago, coarsely: `12 s`, `5 min`, `3 h`, `2 d`. */
export function showAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 90) return `${seconds} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** The time of day here, of what is within hours: `14:03:12`. */
export function showClock(ms: number): string {
  return new Date(ms).toTimeString().slice(0, 8);
}

/** `1 result`, `2 results`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
