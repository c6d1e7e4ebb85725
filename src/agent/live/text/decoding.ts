/**
 * How a server makes text of bytes. Two decoders are known (docs/dev/servers.md 1.2, 1.4); both decode UTF-8. Until raw bytes
 * prove it, only the ASCII characters of a text count. A server that decodes otherwise is followed by raw bytes alone.
 */
import type { CapabilityStore } from '../../ports.ts';

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

  /** Records what raw bytes proved; the first contradiction counts. */
  learn(found: Exclude<ServerDecoding, 'unknown'>, onChanged: (reason: string) => void): void {
    const before = this.server;
    if (found === before) return;
    this.#capabilities.set(DECODING_CAPABILITY, found);
    if (before !== 'unknown')
      onChanged(`the service ${found === 'utf-8' ? 'decodes UTF-8 now' : 'does not decode UTF-8 any more'}`);
  }
}
