/**
 * Panes that scroll together: the one that the reader used last leads. A file of the same name follows by the number of
 * the line, as two tasks of a job do; another file by the time at which lines arrived, as output and errors of a task do.
 */
import { effect, type ReadonlySignal, signal } from '@preact/signals';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askPlace } from '../api.ts';
import type { ArrivalTimes } from '../file/arrivals.ts';
import type { OpenFile } from '../file/open-file.ts';

/** What a pane shows. */
interface Shown {
  readonly file: OpenFile;
  readonly arrivals: ArrivalTimes;
  /** The bytes on the screen. */
  readonly seen: ReadonlySignal<{ readonly from: number }>;
  readonly fileName: string | undefined;
  readonly content: () => ContentQuery;
  wantTimes(): void;
}

interface Member {
  readonly opened: Shown;
  /** Whether the reader used it last. */
  readonly isLeader: () => boolean;
  /** Where it is asked to go, and whether it is on its way. */
  isMoving: boolean;
}

export class InStep {
  readonly isOn = signal(false);
  /** How many panes there are. */
  readonly size = signal(0);
  readonly #members = new Set<Member>();

  /** Until the returned function is called. */
  join(opened: Shown, isLeader: () => boolean): () => void {
    const member = { opened, isLeader, isMoving: false };
    this.#members.add(member);
    this.size.value = this.#members.size;
    const stop = effect(() => {
      void opened.seen.value;
      void opened.file.following.value;
      if (this.isOn.value && isLeader()) this.#lead(opened);
    });
    // Times that came may be what a pane waits for.
    const stopTimes = opened.arrivals.changes.subscribe(() => {
      const leader = [...this.#members].find((one) => one.isLeader());
      if (this.isOn.peek() && leader !== undefined) this.#lead(leader.opened);
    });
    return () => {
      stop();
      stopTimes();
      this.#members.delete(member);
      this.size.value = this.#members.size;
    };
  }

  toggle(): void {
    this.isOn.value = !this.isOn.peek();
  }

  #lead(leader: Shown): void {
    for (const member of this.#members) {
      if (member.opened === leader || member.isMoving) continue;
      member.isMoving = true;
      // One move at a time: it goes where the leader is when it begins.
      requestAnimationFrame(() =>
        this.#move(member, leader)
          .catch(() => false)
          .then((isLate) => {
            member.isMoving = false;
            if (isLate && this.isOn.peek()) this.#lead(leader);
          }),
      );
    }
  }

  /** Whether the leader has moved on meanwhile. */
  async #move({ opened }: Member, leader: Shown): Promise<boolean> {
    const { from } = leader.seen.peek();
    if (leader.file.following.peek()) {
      if (!opened.file.following.peek() && !opened.file.isFormer) opened.file.follow();
    } else {
      const byte = await this.#placeIn(opened, leader, from);
      if (byte !== undefined) opened.file.jumpTo(byte, 'start');
    }
    return leader.seen.peek().from !== from;
  }

  /** The byte of the other file that belongs beside a byte of the leader; undefined where that is not known. */
  async #placeIn(opened: Shown, leader: Shown, from: number): Promise<number | undefined> {
    if (opened.fileName === leader.fileName) {
      const { window } = leader.file;
      const line = window.lineOf(window.rowAt(window.lineStartOf(window.rowAt(from))));
      return line === undefined ? undefined : (await askPlace(opened.content(), { line })).byte;
    }
    leader.wantTimes();
    opened.wantTimes();
    const arrived = leader.arrivals.of(from, leader.file.window.endOfLine(from));
    return arrived && opened.arrivals.byteAt(arrived.to);
  }
}
