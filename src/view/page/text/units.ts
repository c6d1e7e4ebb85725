/** Figures in words that people read at a glance. */

import { showCount as grouped } from '../../../numbers.ts';

export { showBytes as bytes, showCount as grouped } from '../../../numbers.ts';

/** `1 line`, `2 lines`. */
export const counted = (count: number, word: string): string => `${grouped(count)} ${word}${count === 1 ? '' : 's'}`;

/** `3 s`, `5 min`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return hours % 24 === 0 ? `${Math.floor(hours / 24)} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `3 s ago`. */
export const ago = (at: number, now: number): string => `${duration(now - at)} ago`;

/** `07:35` of the same day, `11-22 07:35` of the same year, else `2026-11-22 07:35`. */
export const moment = (at: number, now: number): string => shortened(clock(at), now);

/** The same of a time that is text already. */
export function shortened(text: string, now: number): string {
  const today = clock(now);
  const same = text.slice(0, 10) === today.slice(0, 10) ? 11 : text.slice(0, 4) === today.slice(0, 4) ? 5 : 0;
  return text.slice(same, 16);
}

/** `2026-11-22 07:35:45`, as this machine's clock shows it: the language of Sweden writes times so. */
export const clock = (at: number): string => new Date(at).toLocaleString('sv-SE');
