/** Where the bytes of an opened content come from in a browser: the server, and the frames of the screen. */
import type { ContentQuery } from '../../contract/addresses.ts';
import { askPlace, askStretch } from '../api.ts';
import type { ByteSource } from './open-file.ts';

/** What the server takes for a stretch. */
const LEAST_BYTES = 4096;

export function browserSource(content: ContentQuery): ByteSource {
  const at = (version: string | undefined) => (version === undefined ? content : { ...content, version });
  return {
    stretch: (where, version, signal) => askStretch(at(version), where, signal),
    bytes: async ([from, to], version, signal) =>
      (await askStretch(at(version), { at: from, bytes: Math.max(LEAST_BYTES, to - from) }, signal)).bytes,
    line: async (byte, version, signal) => (await askPlace(at(version), { byte }, signal)).line,
    frame: () => new Promise((resolve) => requestAnimationFrame(() => resolve())),
    wait,
  };
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
