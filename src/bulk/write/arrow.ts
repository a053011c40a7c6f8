/** Owns the output as an Arrow file (Feather 2): built from the records at the end, a record batch at a time. */
import { open } from 'node:fs/promises';
import type * as Arrow from 'apache-arrow';
import type { OutputFormat, OutputShape } from './format.ts';
import { elementsOf } from './format.ts';
import { isSigned } from './packed.ts';
import { encodeRecords, groupsOf, hasWholeIds, type Recorded } from './records.ts';

type Library = typeof Arrow;

/** An Arrow file of a shape. */
export function arrow(shape: OutputShape): OutputFormat {
  return {
    head: Buffer.alloc(0),
    encode: (embedded) => encodeRecords(embedded, shape),
    async complete({ workPath, builtPath }) {
      const isWhole = await hasWholeIds(workPath, shape);
      const library = await import('apache-arrow');
      const schema = schemaOf(library, shape, isWhole);
      const handle = await open(builtPath, 'w');
      try {
        const writer = new library.RecordBatchFileWriter();
        // Opens the file, also where no batch follows.
        writer.reset(undefined, schema);
        const written = (async () => {
          for await (const part of writer) await handle.appendFile(part as Uint8Array);
        })();
        for await (const group of groupsOf(workPath, shape)) {
          writer.write(batchOf(library, schema, group, shape, isWhole));
          // What was written is taken up before the next group is made.
          await new Promise((resolve) => setImmediate(resolve));
        }
        writer.close();
        await written;
        await handle.sync();
      } finally {
        await handle.close();
      }
      return builtPath;
    },
  };
}

function componentOf(library: Library, { kind, output }: OutputShape): Arrow.DataType {
  if (output === null || kind === 'sparse') return new library.Float32();
  return isSigned(output) ? new library.Int8() : new library.Uint8();
}

function schemaOf(library: Library, shape: OutputShape, isWhole: boolean): Arrow.Schema {
  const { Field, FixedSizeList, Int32, Int64, List, Schema, Utf8 } = library;
  const component = new Field('item', componentOf(library, shape), false);
  const vector = new FixedSizeList(elementsOf(shape), component);
  const columns: Arrow.Field[] = [
    new Field('index', new Int64(), false),
    ...(shape.hasIds ? [new Field('id', isWhole ? new Int64() : new Utf8(), false)] : []),
  ];
  switch (shape.kind) {
    case 'dense':
      columns.push(new Field('embedding', vector, false));
      break;
    case 'sparse':
      columns.push(new Field('indices', new List(new Field('item', new Int32(), false)), false));
      columns.push(new Field('values', new List(component), false));
      break;
    case 'multi':
      columns.push(new Field('matrix', new List(new Field('item', vector, false)), false));
  }
  return new Schema(columns);
}

function batchOf(
  library: Library,
  schema: Arrow.Schema,
  group: readonly Recorded[],
  shape: OutputShape,
  isWhole: boolean,
): Arrow.RecordBatch {
  const { makeData, RecordBatch, Struct } = library;
  const children = schema.fields.map(({ name, type }: { name: string; type: Arrow.DataType }) =>
    columnOf(library, name, type, group, shape, isWhole),
  );
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: group.length, nullCount: 0, children }),
  );
}

function columnOf(
  library: Library,
  name: string,
  type: Arrow.DataType,
  group: readonly Recorded[],
  shape: OutputShape,
  isWhole: boolean,
): Arrow.Data {
  const make = library.makeData as (given: object) => Arrow.Data;
  const inner = (type.children as readonly Arrow.Field[] | null)?.[0]?.type as Arrow.DataType | undefined;
  const whole = (values: readonly bigint[]): Arrow.Data =>
    make({ type, length: values.length, nullCount: 0, data: BigInt64Array.from(values) });
  const numbers = (): Arrow.Data =>
    make({ type: componentOf(library, shape), length: total(group), nullCount: 0, data: joined(group) });
  switch (name) {
    case 'index':
      return whole(group.map(({ index }) => BigInt(index)));
    case 'id':
      if (isWhole) return whole(group.map(({ id }) => BigInt(id ?? 0)));
      return library.vectorFromArray(
        group.map(({ id }) => String(id)),
        new library.Utf8(),
      ).data[0] as Arrow.Data;
    case 'embedding':
      return make({ type, length: group.length, nullCount: 0, child: numbers() });
    case 'values':
      return make({ type, length: group.length, nullCount: 0, valueOffsets: offsetsOf(group, 1), child: numbers() });
    case 'indices': {
      const terms = group.map(({ indices }) => indices ?? new Int32Array());
      const data = Int32Array.from(terms.flatMap((list) => [...list]));
      const child = make({ type: inner, length: data.length, nullCount: 0, data });
      return make({ type, length: group.length, nullCount: 0, valueOffsets: offsetsOf(group, 1), child });
    }
    default: {
      const elements = elementsOf(shape);
      const rows = make({ type: inner, length: total(group) / elements, nullCount: 0, child: numbers() });
      return make({ type, length: group.length, nullCount: 0, valueOffsets: offsetsOf(group, elements), child: rows });
    }
  }
}

const total = (group: readonly Recorded[]): number => group.reduce((sum, { numbers }) => sum + numbers.length, 0);

function joined(group: readonly Recorded[]): Recorded['numbers'] {
  const [first] = group;
  const Numbers = (first === undefined ? Float32Array : first.numbers.constructor) as new (
    length: number,
  ) => Recorded['numbers'];
  const all = new Numbers(total(group));
  let end = 0;
  for (const { numbers } of group) {
    all.set(numbers, end);
    end += numbers.length;
  }
  return all;
}

/** Ends of the lists, in elements of that many numbers. */
function offsetsOf(group: readonly Recorded[], elements: number): Int32Array {
  const offsets = new Int32Array(group.length + 1);
  let end = 0;
  for (const [position, { numbers }] of group.entries()) {
    end += numbers.length / elements;
    offsets[position + 1] = end;
  }
  return offsets;
}
