/** Events of the view, as a test waits for them. */
import type { Events } from '../../src/view/contract/events.ts';
import { until } from './e2e-until.ts';

export class EventReader {
  close: () => void = () => {};
  #text = '';
  readonly #seen: (readonly [name: string, data: unknown])[] = [];

  take(text: string): void {
    this.#text += text;
    const lines = this.#text.split('\n');
    this.#text = lines.pop() ?? '';
    for (const line of lines) if (line !== '') this.#seen.push(JSON.parse(line) as [string, unknown]);
  }

  /** The stream broke off: what came of an event is lost. */
  broken(): void {
    this.#text = '';
  }

  /** Everything of this name so far. */
  all<Name extends keyof Events>(name: Name): Events[Name][] {
    return this.#seen.filter(([seen]) => seen === name).map(([, data]) => data as Events[Name]);
  }

  /** The last event of this name, as soon as it is so. */
  until<Name extends keyof Events>(
    name: Name,
    isSo: (data: Events[Name]) => boolean = () => true,
  ): Promise<Events[Name]> {
    return until(`the event ${name}`, () => {
      const last = this.all(name).at(-1);
      return last !== undefined && isSo(last) ? (last as Exclude<Events[Name], undefined | false>) : undefined;
    }) as Promise<Events[Name]>;
  }
}
