/** The parts of a view that serves, as its routes use them. */
import type { Contents } from './content/contents.ts';
import type { LineIndexes } from './content/line-indexes.ts';
import type { Changes } from './events/changes.ts';
import type { FileLengths } from './events/file-lengths.ts';
import type { Recorder } from './events/recorder.ts';
import type { Snapshots } from './events/snapshots.ts';
import type { Limits } from './http/limits.ts';
import type { OpenStore } from './open-store.ts';
import type { ViewSettings } from './settings.ts';

/** What changes besides the mirrors, which are told of by their names: the store, the agent, the figures. */
export const STATE = 'state';

export interface ViewParts {
  readonly settings: ViewSettings;
  readonly store: OpenStore;
  readonly contents: Contents;
  readonly indexes: LineIndexes;
  readonly changes: Changes;
  readonly lengths: FileLengths;
  readonly recorder: Recorder;
  readonly snapshots: Snapshots;
  readonly limits: Limits;
  /** Told of what should not happen. */
  readonly onFailure: (error: unknown) => void;
}
