/** One contract for every server: what the client sends is understood exactly, and so is what the server answers. */
import { afterAll, beforeAll, describe } from 'vitest';
import { makePlace, type Serve } from './contract-place.ts';
import { faultContract } from './fault-contract.ts';
import { fileContract } from './file-contract.ts';
import { listingContract } from './listing-contract.ts';
import { partsContract } from './parts-contract.ts';
import { type ContractService, type Dialect, soapDialect, VERSIONS } from './service.ts';
import { transferContract } from './transfer-contract.ts';

/** The tests of the contract, in each of the dialects; `start` makes the server that they run against. */
export function contractOf(
  name: string,
  start: () => Promise<ContractService>,
  dialects: readonly Dialect[] = VERSIONS.map(soapDialect),
): void {
  describe(name, () => {
    let service: ContractService | undefined;
    beforeAll(async () => {
      service = await start();
    });
    afterAll(async () => {
      await service?.close();
    });
    describe.each(dialects.map((dialect) => [dialect.name, dialect] as const))('over %s', (_, dialect) => {
      const serve: Serve = async (job, options) => {
        if (service === undefined) throw new Error('the server did not start');
        return await makePlace(service, dialect, job, options);
      };
      describe('DownloadPartsOfJobFilesFromCluster', () => partsContract(serve, dialect));
      describe('ListChangedFilesForJob', () => listingContract(serve, dialect));
      describe('DownloadFileFromCluster', () => fileContract(serve, dialect));
      describe('GetFileTransferMethod and EndFileTransfer', () => transferContract(serve, dialect));
      describe('faults and sessions', () => faultContract(serve, dialect));
    });
  });
}
