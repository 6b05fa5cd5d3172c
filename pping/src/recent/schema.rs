//! The description of the API, `docs/schema/api.json`: `paths.json` has its paths, the types of queries say which parameters
//! these take, and the types of answers what they return.

use schemars::{JsonSchema, Schema, generate::Contract};
use serde_json::{Map, Value, json};

use super::{
    GroupDetail, GroupsAnswer, HistoryAnswer, HistoryQuery, Query, Summary, WorstAnswer, WorstOfRange,
    WorstOfRangeQuery, WorstQuery, order::PREFIXES_OF_ONE,
};
use crate::schemas::{assert_is_in_file, generator, without_null};

/// Where types are defined in the document.
const DEFINITIONS: &str = "/components/schemas";

/// A response about one group lists more of its prefixes than the others.
pub(super) fn all_prefixes(schema: &mut Schema) {
    let prefixes = schema.pointer_mut("/properties/prefixes").and_then(Value::as_object_mut).unwrap();
    prefixes.insert("maxItems".into(), PREFIXES_OF_ONE.into());
}

/// The parameters of a query.
fn parameters<T: JsonSchema>() -> Vec<Value> {
    let mut generator = generator(DEFINITIONS, Contract::Deserialize);
    let mut schema = generator.root_schema_for::<T>().to_value();
    let fields = schema["properties"].as_object_mut().unwrap();
    let parameter = |(name, mut schema): (&String, Value)| {
        let schema = schema.as_object_mut().unwrap();
        let description = schema.remove("description");
        schema.retain(|keyword, value| keyword != "default" || !value.is_null() && value != "");
        without_null(schema);
        json!({ "name": name, "in": "query", "required": false, "schema": schema, "description": description })
    };
    fields.iter_mut().map(|(name, field)| parameter((name, field.take()))).collect()
}

/// The definitions of all answers.
fn definitions() -> Map<String, Value> {
    let mut generator = generator(DEFINITIONS, Contract::Serialize);
    generator.subschema_for::<Summary>();
    generator.subschema_for::<HistoryAnswer>();
    generator.subschema_for::<GroupsAnswer>();
    generator.subschema_for::<GroupDetail>();
    generator.subschema_for::<WorstAnswer>();
    generator.subschema_for::<WorstOfRange>();
    generator.take_definitions(true)
}

#[test]
fn schema_is_that_of_the_types() {
    let mut document: Value = serde_json::from_str(include_str!("paths.json")).unwrap();
    for path in document["paths"].as_object_mut().unwrap().values_mut() {
        let parameters = match path["get"]["parameters"].as_str() {
            Some("HistoryQuery") => parameters::<HistoryQuery>(),
            Some("WorstOfRangeQuery") => parameters::<WorstOfRangeQuery>(),
            Some("Query") => parameters::<Query>(),
            Some("WorstQuery") => parameters::<WorstQuery>(),
            Some(other) => panic!("no parameters {other}"),
            None => continue,
        };
        path["get"]["parameters"] = parameters.into();
    }
    document["components"] = json!({ "schemas": definitions() });
    assert_is_in_file(&document, "api.json");
}
