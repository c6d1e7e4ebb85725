/**
 * How a server makes text of bytes. Two decoders are known (docs/dev/servers.md 1.2, 1.4); both decode UTF-8. Until raw bytes
 * prove it, and of a server that decodes otherwise, only the ASCII characters of a text count.
 */
import type { CapabilityStore } from '../../ports/server.ts';
import type { LiveFile } from '../mirror/live-file.ts';

export type ServerDecoding = 'unknown' | 'utf-8' | 'other';

export const DECODING_CAPABILITY = 'text-encoding';

export class TextDecoding {
  readonly #capabilities: CapabilityStore;

  constructor(capabilities: CapabilityStore) {
    this.#capabilities = capabilities;
  }

  get server(): ServerDecoding {
    const stored = this.#capabilities.get(DECODING_CAPABILITY);
    return stored === 'utf-8' || stored === 'other' ? stored : 'unknown';
  }

  /** Records what `file` proved. */
  learn(found: Exclude<ServerDecoding, 'unknown'>, file: LiveFile): void {
    const before = this.server;
    if (found === before) return;
    this.#capabilities.set(DECODING_CAPABILITY, found);
    const reason = `the service ${found === 'utf-8' ? 'decodes UTF-8 now' : 'does not decode UTF-8 any more'}`;
    if (before !== 'unknown') file.report({ kind: 'decoder-changed', at: file.length, reason });
  }
}
