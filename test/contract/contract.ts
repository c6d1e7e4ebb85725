/** One contract for both protocols: the service understands what the client sends, and the client what it answers. */
import { afterAll, beforeAll, describe } from 'vitest';
import { makePlace, type Serve } from './contract-place.ts';
import { faultContract } from './fault-contract.ts';
import { fileContract } from './file-contract.ts';
import { listingContract } from './listing-contract.ts';
import { partsContract } from './parts-contract.ts';
import { SandboxService } from './sandbox-service.ts';
import type { Dialect } from './service.ts';

/** The tests of the contract, in each of the dialects. */
export function contractOf(dialects: readonly Dialect[]): void {
  describe.each(dialects.map((dialect) => [dialect.name, dialect] as const))('over %s', (_, dialect) => {
    let service: SandboxService;
    beforeAll(async () => {
      service = await SandboxService.start();
    });
    afterAll(() => service.close());
    const serve: Serve = (job, options) => makePlace(service, dialect, job, options);
    describe('DownloadPartsOfJobFilesFromCluster', () => partsContract(serve, dialect));
    describe('ListChangedFilesForJob', () => listingContract(serve, dialect));
    describe('DownloadFileFromCluster', () => fileContract(serve, dialect));
    describe('sessions', () => faultContract(serve, dialect));
  });
}
