/** Which texts are lifted out of an answer. */
import type { Operation } from '../contract.ts';

/** An element of an answer whose text does not pass through the `soap` package. */
export interface LiftedElement {
  /** Names below the response element. */
  readonly path: readonly string[];
  readonly encoding: 'text' | 'base64';
  /** Its index stands for it in the rest; else the rest does not show it at all. */
  readonly indexed: boolean;
}

/** What is lifted: the bulky texts, and the names of a listing, of which there can be hundreds of thousands. */
export const LIFTED: Readonly<Partial<Record<Operation, LiftedElement>>> = {
  DownloadFileFromCluster: { path: ['DownloadFileFromClusterResult'], encoding: 'base64', indexed: false },
  DownloadPartsOfJobFilesFromCluster: {
    path: ['DownloadPartsOfJobFilesFromClusterResult', 'JobFileContentExt', 'content'],
    encoding: 'text',
    indexed: true,
  },
  ListChangedFilesForJob: { path: ['ListChangedFilesForJobResult', 'string'], encoding: 'text', indexed: false },
};
