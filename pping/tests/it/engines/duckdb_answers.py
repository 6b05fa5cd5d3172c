"""Prints the answers of DuckDB to the queries of a file, as a JSON list with a list of rows for each query:

    duckdb_answers.py FILE ZONE VARIABLES

VARIABLES is a JSON object with the texts of variables.
"""

import json
import sys

import duckdb

path, zone, variables = sys.argv[1:]
connection = duckdb.connect()
connection.execute(f"SET TimeZone = '{zone}'")
for name, value in json.loads(variables).items():
    # Text, as from an operator's command line.
    connection.execute(f"SET VARIABLE \"{name}\" = '{value}'")
answers = []
with open(path, encoding="utf-8") as file:
    for statement in connection.extract_statements(file.read()):
        result = connection.execute(statement)
        if statement.type == duckdb.StatementType.SELECT:
            names = [column[0] for column in result.description]
            answers.append([dict(zip(names, row)) for row in result.fetchall()])
print(json.dumps(answers, default=str))
