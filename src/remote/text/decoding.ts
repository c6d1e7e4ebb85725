/**
 * How a server makes text of bytes. Two decoders are known (docs/dev/servers.md 1.2, 1.4); both decode UTF-8. Until raw bytes
 * prove it, and of a server that decodes otherwise, only the ASCII characters of a text count.
 */
import type { CapabilityStore } from '../../agent/ports/server.ts';

export type ServerDecoding = 'unknown' | 'utf-8' | 'other';

export const DECODING_CAPABILITY = 'text-encoding';

export class TextDecoding {
  readonly #capabilities: CapabilityStore;
  readonly #onChange: (what: string) => void;

  /** `onChange`: called if it is not what it was before. */
  constructor(capabilities: CapabilityStore, onChange: (what: string) => void = () => {}) {
    this.#capabilities = capabilities;
    this.#onChange = onChange;
  }

  get server(): ServerDecoding {
    const stored = this.#capabilities.get(DECODING_CAPABILITY);
    return stored === 'utf-8' || stored === 'other' ? stored : 'unknown';
  }

  learn(found: Exclude<ServerDecoding, 'unknown'>): void {
    const before = this.server;
    if (found === before) return;
    this.#capabilities.set(DECODING_CAPABILITY, found);
    if (before !== 'unknown') this.#onChange(found === 'utf-8' ? 'it decodes UTF-8' : 'it does not decode UTF-8');
  }
}
