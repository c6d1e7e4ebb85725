/** Which bulky texts are lifted out of an answer, and what their bytes are. */
import { Base64Decoder } from '../../content/base64.ts';
import type { Operation } from '../contract.ts';

import { resolveReferences } from './xml-text.ts';

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

/** Turns the characters of one lifted element into its bytes, which are only good until the next call. */
export interface LiftedDecoder {
  push(characters: Buffer, literal: boolean): Buffer;
  finish(): void;
}

export function createDecoder(encoding: LiftedElement['encoding']): LiftedDecoder {
  return encoding === 'base64' ? new Base64Decoder() : TEXT_DECODER;
}

/** The usual size of a network chunk. */
const SPACE_BYTES = 64 * 1024;

let space: Buffer | undefined;

const TEXT_DECODER: LiftedDecoder = {
  push: (characters, literal) => {
    if (literal) return characters;
    space ??= Buffer.allocUnsafeSlow(SPACE_BYTES);
    return resolveReferences(characters, space);
  },
  finish: () => undefined,
};
